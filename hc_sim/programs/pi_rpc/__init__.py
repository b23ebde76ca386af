"""A scripted headless `pi`: what it says, what it writes and how it ends, in modules of the standard library alone.

The folder is copied beside the program that loads it, so nothing in it may import any other part of this project, nor a
module that starts slowly (`typing`, `dataclasses`, `re` by way of `enum` ...).
"""
