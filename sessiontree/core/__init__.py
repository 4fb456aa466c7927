"""Pure parts: values in, values out. No await, no clock, no randomness, no SQL, no files."""
