"""Write events as intervals of NWB files, and read them."""
