"""The rendered data set: small untrimmed videos of a person who acts now and then."""
