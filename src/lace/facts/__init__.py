"""020: the facts that a validated record gives, and the views through which rules see them."""
