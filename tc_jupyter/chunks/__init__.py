"""A def over arrays that are cut into chunks: which part of which array each chunk of a result needs, and who computes it."""
