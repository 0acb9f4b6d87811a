"""Each picture is drawn by the script of its name: ``python -m docs.pictures.queues``."""
