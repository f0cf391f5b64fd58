// Devices that come as plug-ins: a shared object with one entry. Nothing here knows which device it brings.
//
// The entry returns the plug-in's record. Program and plug-in must have been built from the same operators and the same
// device interface: both carry a hash of them, and a mismatch is refused.
#ifndef TRADEWIND_GRAPH_PLUGIN_H
#define TRADEWIND_GRAPH_PLUGIN_H

#include "base/err.h"
#include "graph/device.h"

#define PLUGIN_ENTRY "tradewind_plugin"

typedef struct {
    const char *hash;
    const device *device;
} plugin;

typedef const plugin *plugin_entry(void);

// Opens NAME beside the program, or in the lib folder beside it. NULL, with the reason, where it is missing (*found is
// false then), cannot be loaded or is of another build. It stays loaded until the program ends. Where memory is short
// as it is loaded, or a library of its crashes then, the program ends with one line and status 1.
const device *plugin_open(const char *name, bool *found, err *e);

#endif
