"""Program -> ranges, shapes, origins, preconditions, regions."""
