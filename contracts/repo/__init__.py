"""The gate on a pi-legion checkout: what the frozen contract says of files, launch path, modes, cards and scripts."""
