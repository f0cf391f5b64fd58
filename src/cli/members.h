// Ensembles: a directory whose config.yaml asks for several members, each of which is a run in a directory of its own,
// DIR/member_1 and so on.
#ifndef TRADEWIND_CLI_MEMBERS_H
#define TRADEWIND_CLI_MEMBERS_H

enum { MEMBERS_MOST = 1000 };

// How many members the ensemble of a directory has; 0 where it is no ensemble's.
int members_of(const char *dir);

// The directory of member k, from 1; the caller frees it.
char *members_dir(const char *dir, int k);

#endif
