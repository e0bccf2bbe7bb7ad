"""Which strategy a reader should take: ``candidates`` reads the records, ``choose`` decides, ``command`` answers.

``replay`` checks the decisions against a second reading of the same records.
"""
