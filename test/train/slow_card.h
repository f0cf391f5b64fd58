// The CPU as a card that lags behind the host: what is played and fed waits in a list, as in a card's streams. It shows
// batches that are given up too early by the host, or overwritten too early on the device. One queue at a time.
#ifndef TRADEWIND_TEST_SLOW_CARD_H
#define TRADEWIND_TEST_SLOW_CARD_H

#include "graph/device.h"

// Reads from the host as late as `feed` and `fed` allow.
const device *slow_card_late(void);

// Reads from the host as early as they allow, beside steps that are played as late as can be.
const device *slow_card_early(void);

// Feeds that were not read yet when the host went on, since the last call: whether there was anything to see.
int slow_card_behind(void);

#endif
