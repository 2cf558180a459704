"""The page of a folder of videos, served while a person corrects it and a model learns from it."""
