"""What the benchmark of a hub needs beside the hub."""
