// The entry points of libcoppice_mpi_ranks.so, by which the program joins the ranks of an MPI job. They are
// plain C.
#pragma once
#include <stddef.h>
#include <stdint.h>

#define COPPICE_MPI_ABI_VERSION 1

extern "C" {

int coppice_mpi_abi_version(void);

// Joins MPI, once. Returns 0, or another number with one line in `error`, as the next does.
int coppice_mpi_begin(int* rank, int* n_ranks, char* error, size_t error_bytes);

// Returns where so many bytes that come from a rank are to go.
typedef void* (*CoppiceMpiRoom)(void* context, int rank, uint64_t bytes);
// RankLink::wait_exchange(): parts[r], sizes[r] bytes, go to rank r.
int coppice_mpi_exchange(const void* const* parts, const uint64_t* sizes, CoppiceMpiRoom room, void* context,
                         char* error, size_t error_bytes);

// RankLink::wait_exchange_known(): coming[r] bytes come from rank r.
int coppice_mpi_exchange_known(const void* const* parts, const uint64_t* sizes, const uint64_t* coming,
                               uint32_t* most, size_t n_most, CoppiceMpiRoom room, void* context, char* error,
                               size_t error_bytes);

// Leaves MPI in order. Without it the launcher ends the other ranks when this one ends.
void coppice_mpi_end(void);
}
