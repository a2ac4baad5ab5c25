package rounds

// StartsWithin is startsWithin.
var StartsWithin = startsWithin
