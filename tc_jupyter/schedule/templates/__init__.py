"""One file per class of loop nest: its default schedule and its candidates. Each works through public primitives only."""
