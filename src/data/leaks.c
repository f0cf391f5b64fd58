#include "data/leaks.h"

leaks leaks_planted;
