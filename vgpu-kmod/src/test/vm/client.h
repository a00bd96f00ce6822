/* The parts of the tenant's program: client.c. */
#ifndef VGPU_CLIENT_H
#define VGPU_CLIENT_H

/* client_seats.c. The tenant `directory` has so many groups that run. */
int seats(unsigned kills, unsigned groups);

#endif
