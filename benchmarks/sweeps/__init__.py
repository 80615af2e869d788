"""What the sweeps over many programs share: processes and limits, what is observed of a call, how engines are judged."""
