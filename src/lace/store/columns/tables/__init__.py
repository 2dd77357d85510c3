"""The tables of a store file: their definitions, their checksums, and who reads and writes each of them."""
