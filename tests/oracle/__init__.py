"""The ranking in NumPy, readable, that the native engine must equal to the bit."""
