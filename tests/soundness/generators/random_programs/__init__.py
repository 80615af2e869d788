"""Programs written at random: what a corpus written by hand does not reach. ``writer`` writes them, ``run`` tries them."""
