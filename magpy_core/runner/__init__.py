"""Runs an entrypoint in a separate process.

Parent side, no torch: ``request`` (what to run, how it ended), ``protocol`` (messages), ``handle`` and ``launch``
(processes), ``verdict`` (messages to Outcome). Child side: ``bootstrap`` -> ``child`` -> ``supervise`` (keeps the tree
together) and ``entrypoint`` (runs the script as Python does), ``discovery`` (finds the regions), ``channel`` (sends messages
to the parent).
"""
