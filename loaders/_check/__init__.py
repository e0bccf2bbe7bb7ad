"""Whether a change made any strategy slower or fatter, and whether that is noise.

``plan``         what is measured: strategies that both sides have and that may differ
``touched``      which strategies a change can have touched, from the sources; pure
``judge``        blocks of trials to a verdict with its interval; pure
``sides``        two commits side by side, each running its own trials
``serve``        the process that runs one side's trials
``trials``       how the two sides run theirs: alike, and timed only once proven
``partners``     two trials that are alive at once, and whose epochs take turns
``run``          interleaved blocks of trials until everything is decided or the time is up
``show``         what was found, as lines of a table; pure
``selftest``     how often the check is wrong, with identical sides and with planted differences
``planted``      the strategies of these: the same work, as it is and with added time or memory
``start``        fresh and forked trials of the same strategies in turn
``equivalence``  whether these measure the same; pure
"""
