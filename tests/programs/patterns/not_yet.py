"""Patterns that captures don't serve today: fewer than 13 hits of the last 15 calls, or more than 4 captures."""

NOT_YET = frozenset(
    {
        # numbers
        "batch_time_meter",
        "counter_numpy_scalar",
        "csv_rows",
        "dqn_replay_memory",
        "losses_in_numpy_array",
        "mean_of_numpy_window",
        "numpy_mean_of_list",
        "sigmoid_annealing",
        "throughput",
        # random_decisions
        "cutmix",
        "layer_drop",
        "numpy_choice_of_rows",
        "rand_augment",
        "random_erasing",
        "shuffled_indices",
        "teacher_forcing_each_token",
        # data_decisions
        "experts_by_nonzero",
        "lbfgs_closure",
        "predictions_to_numpy",
        # schedules
        "clip_by_history",
        "hooks_for_one_call",
        "swa_from_a_step",
        # structures
        "heap_of_hardest",
        "infinite_generator",
        "iterator_restarted",
        "lru_cache_of_numbers",
        "seen_ids",
    }
)
