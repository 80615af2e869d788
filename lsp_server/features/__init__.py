"""Editor features for findings: their current positions, their texts, code lenses and actions. No protocol I/O here."""
