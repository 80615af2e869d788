"""Editor features over findings: where they are now, how they read, what can be started. No I/O on the wire here."""
