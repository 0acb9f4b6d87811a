"""Pages, and in pictures/ the scripts that draw what they show."""
