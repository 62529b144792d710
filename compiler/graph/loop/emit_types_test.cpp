// Element types and scalar functions on a device.
