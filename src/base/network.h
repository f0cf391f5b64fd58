// File systems that other machines share: locks and mappings do not hold there as they do on a disk of this machine.
#ifndef TRADEWIND_BASE_NETWORK_H
#define TRADEWIND_BASE_NETWORK_H

// Name of the network or cluster file system that a path is on, "NFS"; NULL where it is on none, or not known. The last
// part of the path need not be there. FUSE counts: what lies behind it, such as sshfs, is not told.
const char *network_of(const char *path);

#endif
