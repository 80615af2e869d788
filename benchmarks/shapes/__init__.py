"""Networks whose inputs change shape from call to call: how often they are captured or recompiled, and how fast they are."""
