"""Serial robots: chains of joints, their kinematics, stiffness and dynamics."""
