"""Scenarios and checks run: the drive carried out, in this process or in a pool of workers, and the gate over all."""
