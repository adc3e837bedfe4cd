"""Unveil: finds silent inefficiencies of machine-learning hosts and fixes them reversibly."""
