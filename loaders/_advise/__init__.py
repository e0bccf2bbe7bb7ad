"""Which strategy a reader should take: ``candidates`` reads the records, ``choose`` decides, ``command`` says it.

``replay`` holds the decisions against a second reading of the same records.
"""
