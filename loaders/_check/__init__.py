"""Whether a change made any strategy slower or fatter, and whether that is noise.

``touched``      which strategies a change can have touched, from the sources; pure
``judge``        blocks of trials to a verdict with its interval; pure
``sides``        two commits side by side, each running its own trials
``run``          interleaved blocks of trials until everything is decided or the time is up
``selftest``     how often the check is wrong, with identical sides and with planted differences
``start``        fresh and forked trials of the same strategies in turn
``equivalence``  whether these measure the same; pure
"""
