"""The experiments of the kernel papers done again: published and measured figures side by side."""
