"""Shared code of the sweeps: processes and limits, observation of calls, evaluation of engines."""
