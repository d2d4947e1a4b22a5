package controller

// BeyondBaseline is what the controller holds against the pod of a Sandbox.
var BeyondBaseline = beyondBaseline
