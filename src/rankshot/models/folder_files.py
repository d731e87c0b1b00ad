"""What the files in the folder of a network are called."""

CONFIG, WEIGHTS = "config.json", "model.safetensors"
# What may lie beside: the classes it has learned from, what was measured, thresholds at one example, the model card.
CLASSES, EVALUATION, ONE_SHOT, CARD = "classes.json", "evaluation.json", "one_shot.json", "README.md"
