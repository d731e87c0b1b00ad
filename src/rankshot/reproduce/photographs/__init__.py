"""What ranking does for deep networks: ResNet-12 on mini-ImageNet, pretrained ones on photographs of birds and products."""
