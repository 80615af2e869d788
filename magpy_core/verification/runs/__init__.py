"""Whole runs of a program, compiled and in eager mode, compared. Key function: verdict.judge."""
