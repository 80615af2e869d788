"""Programs whose control flow depends on data: eager, torch.compile and MagPy, each program in a process of its own."""
