package configfile

// PartsOf is for the tests.
var PartsOf = partsOf
