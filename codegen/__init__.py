"""The same model as executable text: CasADi functions, generated Python and C."""
