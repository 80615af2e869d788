"""Families of regions: each file combines the entries of its tables. ``test_families.py`` runs a share of every family."""
