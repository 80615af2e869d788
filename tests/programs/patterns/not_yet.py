"""Patterns that captures don't serve today: fewer than 13 hits of the last 15 calls, or more than 4 captures."""

NOT_YET = frozenset(
    {
        # numbers
        "dqn_replay_memory",
        # random_decisions
        "layer_drop",
        "rand_augment",
        "shuffled_indices",
        "teacher_forcing_each_token",
        # data_decisions
        "experts_by_nonzero",
        "lbfgs_closure",
        # schedules
        "clip_by_history",
        "hooks_for_one_call",
        "swa_from_a_step",
        # structures
        "heap_of_hardest",
        "infinite_generator",
        "lru_cache_of_numbers",
        "seen_ids",
    }
)
