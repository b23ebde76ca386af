"""The commands of `hc-sim` in modules of their own, each imported when it is called."""
