"""SlotQueue: slots that are loaned, published, taken and released without a copy."""
