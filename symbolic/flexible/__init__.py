"""Flexible joints and flexible links: beams, equations of motion, critical stiffness."""
