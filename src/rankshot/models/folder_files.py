"""What the files in the folder of a network are called."""

CONFIG, WEIGHTS = "config.json", "model.safetensors"
# What may lie beside: the classes it has learned from and the mean embedding of each, what was measured, as JSON and as a
# page, thresholds at one example, the model card.
CLASSES, EVALUATION, REPORT = "classes.json", "evaluation.json", "report.html"
CLASS_MEANS, ONE_SHOT, CARD = "class_means.safetensors", "one_shot.json", "README.md"
