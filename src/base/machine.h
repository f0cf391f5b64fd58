// Memory as the system tells it: the machine's, that of the containers around this process, and the process's own.
//
// Everything is read from /proc and /sys (cgroups of version 2 and 1) at each call, without an allocation: a thread may
// look while others compute. What the system does not say is negative.
#ifndef TRADEWIND_BASE_MACHINE_H
#define TRADEWIND_BASE_MACHINE_H

// In bytes. Of the machine and the containers it is the one that has the least left.
typedef struct {
    double total;           // that it has, or may take
    double used;            // of that; pages of files which are given up when others need them are no use
    double available;       // what can still be had
    double anonymous, most; // of this process: its own pages, which is all but mapped files, and all pages at most
} machine_memory;

// `root` stands before the paths: "" for the system's own.
machine_memory machine_look(const char *root);

#endif
