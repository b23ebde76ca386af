"""Systems under test behind one small protocol: the Python supervisor in process, and any program over stdio."""

from contracts.sut.base import METHODS, Sut, SutError, SutFactory, SutSetup

__all__ = ["METHODS", "Sut", "SutError", "SutFactory", "SutSetup"]
